"""Hostile inputs: campaigns that try to break what the package promises, for a bounded time.

``python -m tests.fuzz --seconds 1200`` runs every campaign in turn and prints, for each failure, how to run that case
alone. A case is settled by its campaign, the seed and its number, and by nothing else: `case` says what a case is,
`limits` bounds its time and memory, `worker` runs cases in a process of their own, `runner` shares out the time.
What is thrown at the package comes from `nasty` (values, and changes of bytes and trees) and `material` (good models
and tables to begin from); `campaigns` lists the campaigns, a module each.
"""
