"""`python -m benchmarks`, the same as the console script `empg-bench`."""

from benchmarks.cli import main

if __name__ == "__main__":
    main()
