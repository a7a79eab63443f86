"""`python -m jointwise` is the command `jointwise`."""

from jointwise.cli import main

main()
