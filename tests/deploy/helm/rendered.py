"""What the chart renders: its resources, and the directory that a pod finds at /etc/realmgate.

chart = rendered(tmp_path, values); chart.one("StatefulSet"); chart.lay_out(pod, tmp_path / "etc", contents)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.deploy.helm.tools import run

CHART = Path(__file__).parents[3] / "deploy" / "helm" / "realmgate"
OF_OPERATORS = ("ServiceMonitor", "PrometheusRule")  # Kubernetes has no schema of these
RELEASE, NAMESPACE = "orders", "messaging"
Resource = dict[str, Any]


@dataclass
class Rendered:
    resources: list[Resource]

    def all(self, kind: str) -> list[Resource]:
        return [resource for resource in self.resources if resource["kind"] == kind]

    def one(self, kind: str, name: str = "") -> Resource:
        [match] = [resource for resource in self.all(kind) if resource["metadata"]["name"].endswith(name)]
        return match

    def pods(self) -> Iterator[Resource]:
        """Templates of pods, each with its labels."""
        for resource in self.resources:
            if resource["kind"] in ("StatefulSet", "Deployment"):
                yield resource["spec"]["template"]
            if resource["kind"] == "CronJob":
                yield resource["spec"]["jobTemplate"]["spec"]["template"]

    def pod(self, component: str) -> Resource:
        [match] = [resource for resource in self.pods() if resource["metadata"]["labels"][COMPONENT] == component]
        return match

    def lay_out(self, pod: Resource, directory: Path, contents: Mapping[tuple[str, str], str]) -> Path:
        """As the kubelet projects the volume `config`. `contents`: by name and key, of what is not rendered."""
        [volume] = [entry for entry in pod["spec"]["volumes"] if entry["name"] == "config"]
        for source in volume["projected"]["sources"]:
            [(kind, projection)] = source.items()
            for item in projection["items"]:
                path = directory / item["path"]
                path.parent.mkdir(parents=True, exist_ok=True)
                if kind == "configMap" and projection["name"] == self.all("StatefulSet")[0]["metadata"]["name"]:
                    path.write_text(self.one("ConfigMap", projection["name"])["data"][item["key"]])
                else:
                    path.write_text(contents[projection["name"], item["key"]])
        return directory / "realmgate.yaml"


COMPONENT = "app.kubernetes.io/component"


def template(directory: Path, values: Mapping[str, Any], release: str = RELEASE) -> Any:
    """What `helm template` did."""
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / "values.yaml"
    file.write_text(yaml.safe_dump(dict(values)))
    return run("template", release, CHART, "-n", NAMESPACE, "--kube-version", "1.30.0", "-f", file)


def rendered(directory: Path, values: Mapping[str, Any]) -> Rendered:
    done = template(directory, values)
    assert done.returncode == 0, done.stderr
    return Rendered([resource for resource in yaml.safe_load_all(done.stdout) if resource])
