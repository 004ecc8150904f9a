"""A survey with real processes: 300 users, a server that is killed now and then, and every ledger adds up.

Four classifiers of handwritten digits were fitted on pictures that were held in four ways. Which suits our
users best? Each user has one picture, which is public, and the digit on it, which is not. A user is a process
of its own with a ledger of its own; it gets a question from the server as a line of JSON and sends back a
line of JSON with a private message. Meanwhile users and server are killed at random moments, and started
again: a user answers its question once, and pays for it once; the server forgets nothing.

The table has what the server learned beside what the simulator says of the same rules, over many episodes.

    python examples/survey.py --users 300 --kills 0.2
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import os
import random
import signal
import socket
import sys
import tempfile
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import ldp_gym
from ldp_gym.deploy import AnswerRefusedError, Client, Ledger, Server

FORK = multiprocessing.get_context("fork")
"""Users start as copies of this process: 300 interpreters would take a minute to start."""

WAYS = 4
AT_A_TIME = 6


def draw_survey(users: int, epsilon: float, channel: str, seed: int) -> tuple[dict, np.ndarray, np.ndarray]:
    """The rules that all agree on, and the users' pictures and digits."""
    images, digits = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(digits))
    models = []
    for way, rows in enumerate(np.split(order[: 100 * WAYS], WAYS)):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))
        models.append(model.fit(held(images[rows], way), digits[rows]))
    rows = order[100 * WAYS :][:users]
    rules = {"hypotheses": models, "channel": channel, "epsilon": epsilon, "horizon": users}
    return rules, held(images[rows], 1), digits[rows]


def held(images: np.ndarray, way: int) -> np.ndarray:
    """Images ``(n, 64)``, turned so many times by a quarter."""
    return np.rot90(images.reshape(-1, 8, 8), way, axes=(1, 2)).reshape(-1, 64)


# -- The two sides ------------------------------------------------------------------------------------------


def serve(rules: dict, pictures: np.ndarray, store: Path, address: Path) -> None:
    """A server that reads a line and writes a line, until it is killed."""
    server = Server(rules, learner="bayes", store=store)
    address.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address))
        listener.listen(64)
        while True:
            connection, _ = listener.accept()
            with connection, suppress(ConnectionError):  # the user was killed
                line = connection.makefile().readline()
                if line.endswith("\n"):
                    reply = reply_to(server, json.loads(line), pictures)
                    connection.sendall(f"{json.dumps(reply)}\n".encode())


def reply_to(server: Server, request: dict, pictures: np.ndarray) -> dict:
    if "user" in request:
        return server.question(pictures[request["user"]])
    try:
        return {"counted": server.receive(request)}
    except AnswerRefusedError as error:
        return {"refused": str(error)}


def request_line(address: Path, data: dict) -> dict:
    """Send a line and wait for one; try again for as long as the server is away."""
    while True:
        try:
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(address))
                connection.sendall(f"{json.dumps(data)}\n".encode())
                reply = connection.makefile().readline()
            if reply.endswith("\n"):
                return json.loads(reply)
        except OSError:  # it was killed
            pass
        time.sleep(0.02)


def take_part(user: int, label: int, rules: dict, folder: Path, address: Path) -> None:
    """One user: gets a question and keeps it, answers it, and sends the answer until it is acknowledged."""
    kept = folder / f"{user}.json"
    if not kept.exists():
        question = request_line(address, {"user": user})
        half = kept.with_suffix(".half")
        half.write_text(json.dumps(question))
        half.rename(kept)
    with Client(rules, budget=rules["epsilon"], ledger=folder / f"{user}.sqlite") as client:
        answer = client.answer(json.loads(kept.read_text()), label)
    reply = request_line(address, answer)
    if "counted" not in reply:
        sys.exit(f"user {user}: {reply}")


# -- The survey ---------------------------------------------------------------------------------------------


def start(target: object, *arguments: object) -> multiprocessing.Process:
    process = FORK.Process(target=target, args=arguments, daemon=True)
    process.start()
    return process


def kill(process: multiprocessing.Process) -> None:
    if process.is_alive():
        os.kill(process.pid, signal.SIGKILL)
    process.join()


def run_survey(
    rules: dict, pictures: np.ndarray, digits: np.ndarray, folder: Path, kills: float, seed: int
) -> int:
    """All users take part, each in its own process; how many processes were killed on the way."""
    chance, address, store = random.Random(seed), folder / "socket", folder / "answers.sqlite"
    server, killed = start(serve, rules, pictures, store, address), 0
    waiting, running, ends = list(range(len(digits))), {}, {}
    while waiting or running:
        while waiting and len(running) < AT_A_TIME:
            user = waiting.pop(0)
            running[user] = start(take_part, user, int(digits[user]), rules, folder, address)
            if chance.random() < kills:
                ends[user] = time.monotonic() + chance.uniform(0.0, 0.2)
            if chance.random() < kills / 10.0:
                kill(server)
                server, killed = start(serve, rules, pictures, store, address), killed + 1
        time.sleep(0.005)
        for user, process in list(running.items()):
            if time.monotonic() > ends.get(user, math.inf):
                kill(process)
            if process.is_alive():
                continue
            del running[user]
            ends.pop(user, None)
            if process.exitcode == -signal.SIGKILL:
                waiting.append(user)
                killed += 1
            elif process.exitcode:
                raise RuntimeError(f"user {user} failed")
    kill(server)
    return killed


def check_ledgers(folder: Path, users: int, epsilon: float) -> Fraction:
    """What all users have spent, after a look at every ledger: one answer each, and no more than eps."""
    spent = Fraction()
    for user in range(users):
        with Ledger(folder / f"{user}.sqlite") as ledger:
            (entry,) = ledger.entries()
            assert Fraction(entry.epsilon) == Fraction(ledger.spent()) <= Fraction(epsilon)
            spent += Fraction(entry.epsilon)
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--users", type=int, default=300)
    parser.add_argument("--epsilon", type=float, default=0.5)
    parser.add_argument("--channel", default="split", help="one with finitely many messages")
    parser.add_argument("--kills", type=float, default=0.2, help="which share of the users is killed")
    parser.add_argument("--episodes", type=int, default=40, help="of the simulator")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    rules, pictures, digits = draw_survey(
        arguments.users, arguments.epsilon, arguments.channel, arguments.seed
    )
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        killed = run_survey(rules, pictures, digits, folder, arguments.kills, arguments.seed)
        spent = check_ledgers(folder, arguments.users, arguments.epsilon)
        with Server(rules, store=folder / "answers.sqlite") as server:
            rounds, weights, certificate = server.round, server.weights, server.certificate
    seconds = time.perf_counter() - began

    replayed = {"truth": "replay", "truth_kwargs": {"contexts": pictures, "labels": digits}}
    simulated = ldp_gym.evaluate("bayes", {**rules, **replayed}, episodes=arguments.episodes, seed=0)
    tables = np.stack([model.predict_proba(pictures) for model in rules["hypotheses"]], axis=1)
    right = tables[np.arange(len(digits)), :, digits]  # what each model gave to each user's digit

    print(f"{arguments.users} users in processes of their own, {killed} killed on the way, {seconds:.0f} s")
    print(f"{'model':>8} {'log-loss':>9} {'server':>8}   simulator, {arguments.episodes} episodes")
    for j in range(WAYS):
        mean, spread = simulated.weights[:, j].mean(), simulated.weights[:, j].std()
        print(f"{j:>8} {-np.log(right[:, j]).mean():9.3f} {weights[j]:8.3f}   {mean:.3f} ± {spread:.3f}")
    losses = [-np.log(right @ w).mean() for w in simulated.weights]
    own = -np.log(right @ weights).mean()
    print(f"{'mixture':>8} {own:18.3f}   {np.mean(losses):.3f} ± {np.std(losses):.3f}")
    print(f"the server counted {rounds} answers; the ledgers have one each, eps = {float(spent):.6f} in all")
    print(
        f"an answer spends eps = {certificate.epsilon:.12f} at most, in floats: {certificate.floats.verdict}"
    )


if __name__ == "__main__":
    main()
