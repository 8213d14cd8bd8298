"""Loads the verification plugin: verdict words, tiers and the report belong to every run of pytest here."""

pytest_plugins = ["verify.plugin"]
