"""Supervision: the learner beside a bot or a server, locks, interrupts, budgets and sessions."""
