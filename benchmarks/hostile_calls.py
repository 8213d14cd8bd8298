"""Does any public function of the theory answer wrongly, or badly? Many calls with anything at all, and a count.

    python -m benchmarks.hostile_calls --calls 100000

Arguments are drawn by the strategies of `tests.theory.fuzz`: sensible ones, any size that a float has, and in one of
eight places something hostile. Every call must give a right value, or an error whose message begins with an argument;
without a warning, in a second, and without changing what it was given. Values must obey the inequalities of the table
and stay the same, to the last bit, for the same numbers in other types and memory. The first call of a kind of fault
is printed. Exit status 1 if there is any.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
import time
import zlib
from collections import Counter
from collections.abc import Mapping
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

from tests.theory.fuzz import merged
from tests.theory.fuzz.check import check
from tests.theory.fuzz.line import Line

_SECONDS = 1.0
"""Of processor time, for one call."""


class Campaign:
    """Outcomes of all calls, and the first of each kind of fault."""

    def __init__(self, seed_: int) -> None:
        self.seed = seed_
        self.outcomes: Counter[str] = Counter()
        self.faults: dict[tuple[str, str], str] = {}

    def run(self, name: str, line: Line, calls: int) -> int:
        """Up to `calls` calls of one function; how many there were, for some have few arguments to vary."""
        before = self.outcomes.total()

        @seed(self.seed + zlib.crc32(name.encode()))
        @settings(
            max_examples=calls,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(data=st.data())
        def many(data: st.DataObject) -> None:
            arguments = data.draw(line.strategy())
            if self.outcomes.total() < before + calls:
                self.outcomes[self._once(name, line, arguments)] += 1

        many()
        return self.outcomes.total() - before

    def _once(self, name: str, line: Line, arguments: Mapping[str, Any]) -> str:
        longest = 0.0

        def timed(*first: Any, **named: Any) -> Any:
            nonlocal longest
            begun = time.process_time()
            try:
                return line.function(*first, **named)
            finally:
                longest = max(longest, time.process_time() - begun)

        try:
            outcome = check(name, dataclasses.replace(line, function=timed), arguments)
        except Exception as error:
            self._fault(name, f"{type(error).__name__}: {error}", arguments)
            return "fault"
        if longest > _SECONDS:
            self._fault(name, "slow", arguments, f"{longest:.1f} s")
            return "slow"
        return outcome

    def _fault(self, name: str, kind: str, arguments: Mapping[str, Any], more: str = "") -> None:
        key = name, kind[:40]
        if key not in self.faults:
            shown = ", ".join(f"{argument}={_shown(value)}" for argument, value in arguments.items())
            self.faults[key] = f"{name}({shown}): {kind[:400]} {more}"
            print(self.faults[key], flush=True)


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception as error:
        return f"<{type(value).__name__}, {type(error).__name__}>"
    return text if len(text) < 200 else f"{text[:200]}..."


def main() -> int:
    """Run the campaign; the status is 1 if anything was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="functions whose name begins with this")
    given_ = parser.parse_args()
    table = {name: line for name, line in merged("TABLE").items() if name.startswith(given_.only)}
    campaign, rest = Campaign(given_.seed), given_.calls
    for left, (name, line) in zip(range(len(table), 0, -1), table.items(), strict=True):
        rest -= campaign.run(name, line, -(-rest // left))
    print(f"{campaign.outcomes.total()} calls of {len(table)} functions: {dict(campaign.outcomes)}")
    return 1 if campaign.faults else 0


if __name__ == "__main__":
    sys.exit(main())
