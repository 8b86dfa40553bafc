"""`python -m blockl0.app.cli`."""

from blockl0.app.cli import main

if __name__ == "__main__":
    main(prog_name="blockl0")
