"""Prints values.schema.json of the chart; what `config` takes is what docs/configuration.schema.json takes.

.venv/bin/python deploy/helm/values_schema.py > deploy/helm/realmgate/values.schema.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

CONFIGURATION = Path(__file__).parents[2] / "docs" / "configuration.schema.json"
TEXT, YES_OR_NO, WORDS = {"type": "string"}, {"type": "boolean"}, {"type": "array", "items": {"type": "string"}}
FREE = {"type": "object"}  # Kubernetes' own: the cluster checks it
TEXTS = {"type": "object", "additionalProperties": TEXT}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "properties": properties}


def one_of(*words: str) -> dict[str, Any]:
    return {"enum": list(words)}


def whole(least: int, most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": least, "maximum": most}


def configuration() -> dict[str, Any]:
    """Without what is the chart's own; the realm is on Kafka, at brokers that are named."""
    schema: dict[str, Any] = json.loads(CONFIGURATION.read_text())
    for key in ("listen", "admin"):
        del schema["properties"][key]
    realm = schema["properties"]["realm"]
    del realm["properties"]["path"]
    realm["properties"]["kind"] = {"const": "kafka"}
    realm["properties"]["bootstrap"]["pattern"] = r":[0-9]+(,|$)"
    realm["required"] = ["kind", "bootstrap"]
    return {key: value for key, value in schema.items() if key not in ("$schema", "title")}


def files() -> dict[str, Any]:
    entry = of(secret=TEXT, configMap=TEXT, items={**TEXTS, "minProperties": 1})
    entry["properties"]["items"]["propertyNames"] = {"pattern": "^[^/:][^:]*$", "not": {"const": "realmgate.yaml"}}
    return {
        "type": "array",
        "items": {**entry, "required": ["items"], "oneOf": [{"required": ["secret"]}, {"required": ["configMap"]}]},
    }


def values() -> dict[str, Any]:
    image = of(repository=TEXT, tag=TEXT, pullPolicy=one_of("Always", "IfNotPresent", "Never"))
    listeners = {"type": "array", "items": one_of("amqp", "amqps", "ws", "wss"), "minItems": 1, "uniqueItems": True}
    proxies = {"type": "array", "items": {"type": "string", "minLength": 1}, "uniqueItems": True}
    path = {"pattern": r"^(errors\.yaml|tables/[a-z_]+\.yaml)$"}
    modes = one_of("ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod")
    reports = of(existingClaim=TEXT, size=TEXT, storageClassName=TEXT, accessMode=modes)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **of(
            config=configuration(),
            files=files(),
            mappings={**TEXTS, "propertyNames": path},
            anonymous=YES_OR_NO,
            image=image,
            imagePullSecrets={"type": "array", "items": of(name=TEXT)},
            replicas=whole(1, 5),
            listeners=listeners,
            proxies=proxies,
            service=of(type=one_of("ClusterIP", "NodePort", "LoadBalancer"), annotations=TEXTS),
            terminationGracePeriodSeconds=whole(6, 600),
            resources=FREE,
            nodeSelector=TEXTS,
            tolerations={"type": "array", "items": FREE},
            affinity=FREE,
            podAnnotations=TEXTS,
            podDisruptionBudget=of(enabled=YES_OR_NO),
            networkPolicy=of(enabled=YES_OR_NO, adminFrom={"type": "array", "items": FREE}),
            monitoring=of(
                serviceMonitor=YES_OR_NO,
                rules=YES_OR_NO,
                dashboard=YES_OR_NO,
                interval={"type": "string", "pattern": "^[0-9]+(s|m)$"},
                labels=TEXTS,
            ),
            reconcile=of(
                enabled=YES_OR_NO,
                schedule={"type": "string", "pattern": r"^(@\w+|\S+( +\S+){4})$"},
                image=image,
                activeDeadlineSeconds=whole(60, 604_800),
                reports=reports,
                resources=FREE,
            ),
            console=of(
                enabled=YES_OR_NO,
                tlsSecret=TEXT,
                withoutTls=YES_OR_NO,
                withoutLogin=YES_OR_NO,
                groups=WORDS,
                resources=FREE,
            ),
        ),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(values(), indent=2) + "\n")
