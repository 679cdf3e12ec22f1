"""Every bound of the console, with its unit. A gateway that answers nonsense, or too much, costs no more than this."""

from __future__ import annotations

from typing import Final

POLL_S: Final = 2.0
"""Between two rounds of one gateway, while a page is looked at."""
POLL_MAX_S: Final = 30.0
"""The interval of a gateway that answers slowly doubles up to this."""
RETRY_MAX_S: Final = 10.0
"""The same of a gateway that does not answer."""
SLOW_S: Final = 0.5
"""A round that takes longer doubles the interval."""
LINKS_S: Final = 4.0
"""Connections and links are asked for no more often."""
LOOKED_S: Final = 15.0
"""So long after a page was made it counts as looked at."""
FIRST_WAIT_S: Final = 2.5
"""A page waits so long for the first answers of gateways that were not asked lately."""
ASK_TIMEOUT_S: Final = 5.0
"""For one answer, from the connection to its last octet."""
ANSWER_BYTES: Final = 8 * 1024 * 1024
"""Of one answer of a gateway; what is longer is not read to its end."""
HEAD_BYTES: Final = 16_384
MINUTES: Final = 60
"""Of differences of counters."""
KEYS: Final = 4_000
"""Counters that are followed of one gateway."""
HAPPENINGS: Final = 200
"""Starts, reloads and so on that are remembered of one gateway."""
READ_TIMEOUT_S: Final = 20.0
"""For a command that reads the realm."""
COMMANDS_WAITING: Final = 2
"""Commands that wait while one runs; the next one is refused."""
LETTERS_SHOWN: Final = 50
"""Of one page of dead letters."""
BODY: Final = 2_500
"""Characters of the body of a message."""
SECTION_ENTRIES: Final = 50
"""Of one section of a message."""
STORED_S: Final = 5.0
"""So long what was read of the realm is not read again."""
STORED_KEPT: Final = 32
"""Pages of dead letters that are kept, of all users together."""
HISTORY_S: Final = 20.0
"""So long the history of one time is not read again."""
HISTORY_PAGES: Final = 40
"""Of one gateway and time, of 1,500 records at most; two weeks need 14."""
HISTORY_KEPT: Final = 8
"""Times of which the history is kept as it was read."""
GAPS_SHOWN: Final = 50
"""Times without a record, the longest ones."""
COMMANDS_SHOWN: Final = 100
"""Of the commands of the last week."""
ACT_TIMEOUT_S: Final = 600.0
"""For a command that changes something; it is ended then, and the audit says what it did."""
REASON: Final = 200
"""Characters of why something is done."""
GATEWAYS: Final = 32
PROBLEMS_SHOWN: Final = 12
PROBLEMS_LISTED: Final = 500
"""Where all are asked for."""
ROWS_SHOWN: Final = 100
"""Of a long table; the page says how many there are."""
EXAMPLES_SHOWN: Final = 20
REPORT_BYTES: Final = 32 * 1024 * 1024
STREAMS: Final = 50
"""Open streams of events; the next page is not live, and says so."""
STREAM_BEAT_S: Final = 15.0
RENDERED: Final = 64
"""Pages that are kept as they were made, for the next viewer of the same facts."""
BODY_BYTES: Final = 8_192
"""Of a request."""
QUERY_CHARACTERS: Final = 2_000
CONNECTIONS: Final = 200
SESSIONS: Final = 200
SESSION_S: Final = 8 * 3600.0
LOGIN_FAILURES: Final = 1_000
"""Addresses and users whose failures are remembered."""
LOGINS_WAITING: Final = 100
"""Logins of one address that wait for their turn; the next one is refused. Each has one of the connections."""
