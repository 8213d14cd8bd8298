"""Judgement of scores: intervals, estimands, rules of admission for claims, and planted errors."""
