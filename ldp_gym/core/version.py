"""Which version of the package this is: stored results say by which they were played."""

VERSION = "0.1.0"
