"""The README's code runs as it is printed."""

import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_python_blocks_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert len(blocks) == 2
    names = {}
    for block in blocks:
        exec(block, names)
    assert names["over"]
    risk, interval = capsys.readouterr().out.split(" ", 1)
    assert float(risk) > 0
    assert interval.startswith("(")


def test_every_name_in_the_table_exists():
    import ldp_agents  # noqa: F401
    import ldp_gym

    row = {line.split("|")[1].strip(): line for line in README.splitlines() if line.startswith("| ")}
    for kind, registry in (
        ("classes", ldp_gym.CLASSES),
        ("natures", ldp_gym.NATURES),
        ("channels", ldp_gym.CHANNELS),
        ("learners", ldp_gym.LEARNERS),
    ):
        assert set(registry.names()) == set(re.findall(r"`([a-z0-9-]+)`", row[kind])), kind
