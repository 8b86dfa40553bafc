"""`python -m blockl0`."""

from blockl0.cli import main

if __name__ == "__main__":
    main(prog_name="blockl0")
