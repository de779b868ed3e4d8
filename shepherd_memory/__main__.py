"""`python -m shepherd_memory` is `shepherd`."""

from shepherd_memory.frontends.cli import main

if __name__ == "__main__":
    main()
