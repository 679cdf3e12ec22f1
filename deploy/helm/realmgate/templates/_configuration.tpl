{{/* The gateways' configuration: what the values say, with what is the chart's. */}}
{{- define "realmgate.configuration" -}}
{{- $ports := dict "amqp" 5672 "amqps" 5671 "ws" 8080 "wss" 8443 -}}
{{- $listen := list -}}
{{- range .Values.listeners -}}
{{- $address := printf "%s://0.0.0.0:%d" . (get $ports . | int) -}}
{{- if $.Values.proxies }}{{ $listen = append $listen (dict "address" $address "proxy_protocol" true "proxies" $.Values.proxies) }}
{{- else }}{{ $listen = append $listen $address }}{{ end -}}
{{- end -}}
{{- $config := deepCopy .Values.config -}}
{{- $_ := set $config "listen" $listen -}}
{{- $_ := set $config "admin" (dict "listen" "http://0.0.0.0:9464" "commands" "loopback" "guarded" .Values.networkPolicy.enabled) -}}
{{- if .Values.mappings -}}
{{- $_ := set $config "mappings" (merge (dict "dir" "mappings") ($config.mappings | default dict)) -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* What the configuration names beside itself, as a list of paths. */}}
{{- define "realmgate.named" -}}
{{- $named := list -}}
{{- with dig "security" "users" "" .Values.config }}{{ $named = append $named . }}{{ end -}}
{{- range $key := list "certificate" "key" "client_ca" -}}
{{- with dig "tls" $key "" $.Values.config }}{{ $named = append $named . }}{{ end -}}
{{- end -}}
{{- with dig "tls" "key_password" "file" "" .Values.config }}{{ $named = append $named . }}{{ end -}}
{{- range $key, $value := dig "realm" "client" dict .Values.config -}}
{{- if kindIs "map" $value }}{{ with $value.file }}{{ $named = append $named . }}{{ end }}
{{- else if hasSuffix ".location" $key }}{{ $named = append $named $value }}{{ end -}}
{{- end -}}
{{- toJson $named -}}
{{- end -}}

{{- define "realmgate.configVolume" -}}
- name: config
  projected:
    defaultMode: 0440
    sources:
      - configMap:
          name: {{ include "realmgate.name" . }}
          items:
            - {key: realmgate.yaml, path: realmgate.yaml}
            {{- range $path, $_ := .Values.mappings }}
            - {key: {{ printf "mappings.%s" $path | replace "/" "." | quote }}, path: {{ printf "mappings/%s" $path | quote }}}
            {{- end }}
      {{- range .Values.files }}
      - {{ if .secret }}secret:{{ else }}configMap:{{ end }}
          name: {{ .secret | default .configMap }}
          items:
            {{- range $path, $key := .items }}
            - {key: {{ $key | quote }}, path: {{ $path | quote }}}
            {{- end }}
      {{- end }}
{{- end -}}

{{/* What a schema cannot say. */}}
{{- define "realmgate.checked" -}}
{{- $users := dig "security" "users" "" .Values.config -}}
{{- if not (or $users .Values.anonymous) -}}
{{- fail "\n\nNo users: every client that can connect may do everything. Name a users file (config.security.users) that a Secret has (files), or write anonymous: true.\n" -}}
{{- end -}}
{{- if and $users .Values.anonymous -}}
{{- fail "\n\nanonymous: true contradicts config.security.users. Remove one of them.\n" -}}
{{- end -}}
{{- $there := list -}}
{{- range .Values.files }}{{ $there = concat $there (keys .items) }}{{ end -}}
{{- range include "realmgate.named" . | fromJsonArray -}}
{{- if and (not (hasPrefix "/" .)) (not (has . $there)) -}}
{{- fail (printf "\n\nThe configuration names the file %s, and nothing puts it there. Name the Secret or ConfigMap that has it: files: [{secret: NAME, items: {%s: KEY}}]\n" . .) -}}
{{- end -}}
{{- end -}}
{{- range list "amqps" "wss" -}}
{{- if and (has . $.Values.listeners) (not (dig "tls" "certificate" "" $.Values.config)) -}}
{{- fail (printf "\n\nThe listener %s needs config.tls.certificate and config.tls.key, and a Secret that has them (files).\n" .) -}}
{{- end -}}
{{- end -}}
{{- if .Values.console.enabled -}}
{{- if eq (empty .Values.console.tlsSecret) (not .Values.console.withoutTls) -}}
{{- fail "\n\nThe console needs console.tlsSecret, or console.withoutTls: true where a proxy has TLS; one of the two.\n" -}}
{{- end -}}
{{- if not (or $users .Values.console.withoutLogin) -}}
{{- fail "\n\nThe console has no users to log in. Write console.withoutLogin: true where every client that can connect may look, or console.enabled: false.\n" -}}
{{- end -}}
{{- if and .Values.reconcile.enabled (eq .Values.reconcile.reports.accessMode "ReadWriteOncePod") -}}
{{- fail "\n\nWith reconcile.reports.accessMode ReadWriteOncePod the job and the console cannot both mount the claim. Write another access mode, or console.enabled: false.\n" -}}
{{- end -}}
{{- end -}}
{{- end -}}
