{{/* Its name has `realmgate` in it: the alerts find the job by it. */}}
{{- define "realmgate.name" -}}
{{- $name := .Release.Name -}}
{{- if not (contains "realmgate" $name) }}{{ $name = printf "%s-realmgate" $name }}{{ end -}}
{{- $name | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "realmgate.selector" -}}
app.kubernetes.io/name: realmgate
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "realmgate.labels" -}}
{{ include "realmgate.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{/* Every gateway's own address, of the headless service. */}}
{{- define "realmgate.adminUrls" -}}
{{- $name := include "realmgate.name" . -}}
{{- range until (int .Values.replicas) }}
- --gateway
- http://{{ $name }}-{{ . }}.{{ $name }}-gateways:9464
{{- end }}
{{- end -}}

{{- define "realmgate.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "realmgate.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "realmgate.image" -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
