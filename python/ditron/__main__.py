"""The program `ditron` that the package brings along: python -m ditron, or `ditron` where the package is installed."""
import os
import sys

from . import _compile


def main():
    os.execv(_compile.PROGRAM, ["ditron", *sys.argv[1:]])


if __name__ == "__main__":
    main()
