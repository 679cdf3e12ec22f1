"""Twenty questions of a reader who knows AMQP, Kafka and JMS but not this project, each with the file that answers it.

A file that moves or loses its answer breaks the list. The folder of each file leads there by the field's own word: when
an entry needs an explanation, the layout is wrong.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

ANSWERS = {
    "Where do bytes of a socket become AMQP frames?": ("gateway/frames/frame_reader.py", "class FrameReader"),
    "Which code calls proton?": ("gateway/amqp/engine.py", "class Engine"),
    "Who decides whether an ATTACH is confirmed?": ("gateway/attach/admission.py", "class Admission"),
    "How is a message of a publisher stored?": ("gateway/links/publishing.py", "class PublishingLink"),
    "What happens when a consumer settles?": ("gateway/links/consuming.py", "class ConsumingLink"),
    "How much link credit does a publisher get?": ("gateway/links/credit.py", "class CreditPool"),
    "Where is a SASL password checked?": ("gateway/auth/authenticator.py", "class Authenticator"),
    "What does a rejected delivery do in profile um-9.12?": ("mappings/tables/settle.yaml", "um-9.12"),
    "How are rules compiled?": ("mappings/compiler/compile.py", "class Table"),
    "How does an AMQP message become a Kafka record?": ("transformers/events/basic.py", "class Basic"),
    "How is a JMS selector evaluated?": ("transformers/selector/terms.py", "three-valued logic"),
    "Which event does a consumer of a queue get next?": ("native_backend/dispatch/next_events.py", "class EventPicker"),
    "Where is acknowledged what, for a durable?": ("native_backend/state/ack_state.py", "class AckState"),
    "How do acknowledgements reach Kafka?": ("native_backend/journal/journal.py", "class Journal"),
    "What does a start read after a crash?": ("native_backend/journal/recovery.py", "class Recovery"),
    "What does a driver for another log have to do?": ("native_backend/log/port.py", "class Log"),
    "Who may read or write a node?": ("native_backend/access/authorizer.py", "class Authorizer"),
    "How does a message get into the dead letters?": (
        "native_backend/dispatch/dead_letters.py",
        "class DeadLetterCopy",
    ),
    "What is recorded of each outcome?": ("gateway/evidence/outcomes.py", "class Outcomes"),
    "How does Spark find a lost message?": ("reconciliation/transforms/verdicts.py", "def verdicts"),
}


@pytest.mark.parametrize("question", ANSWERS)
def test_its_file_answers(question: str) -> None:
    file, answer = ANSWERS[question]
    assert re.search(rf"{re.escape(answer)}\b", (ROOT / file).read_text()), f"{file} has no {answer}"


def test_there_are_twenty() -> None:
    assert len(ANSWERS) == len({file for file, _ in ANSWERS.values()}) == 20
