"""Pictures of the Goldilocks zone, after the figures of Vysogorets, Dawid and Kempe (2024)."""
