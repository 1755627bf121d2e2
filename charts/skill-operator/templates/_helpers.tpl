{{- define "skill-operator.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{/* Beginning of the names of all objects; at most 45 characters, so that suffixes fit. */}}
{{- define "skill-operator.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 45 | trimSuffix "-" -}}
{{- else if contains (include "skill-operator.name" .) .Release.Name -}}
{{- .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name (include "skill-operator.name" .) | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "skill-operator.selectorLabels" -}}
app.kubernetes.io/name: {{ include "skill-operator.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "skill-operator.labels" -}}
{{ include "skill-operator.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: skill-operator
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "skill-operator.serviceAccountName" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "skill-operator.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "skill-operator.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Mebibytes of a quantity such as 512Mi or 2Gi; the schema lets nothing else through. */}}
{{- define "skill-operator.mebibytes" -}}
{{- $number := regexFind "^[0-9]+" . | int -}}
{{- if hasSuffix "Gi" . -}}{{- mul $number 1024 -}}{{- else -}}{{- $number -}}{{- end -}}
{{- end -}}

{{/* Namespace of image builds. */}}
{{- define "skill-operator.buildNamespace" -}}
{{- $build := default dict .Values.config.build -}}
{{- $name := default (printf "%s-builds" (include "skill-operator.fullname" .)) $build.namespace -}}
{{- if eq $name .Release.Namespace -}}
{{- fail "config.build.namespace must not be the release namespace: builds run as root in their container and need Pod Security baseline; leave it out for a namespace of its own" -}}
{{- end -}}
{{- $name -}}
{{- end -}}

{{/* Port of a URL. */}}
{{- define "skill-operator.portOf" -}}
{{- $port := regexFind ":[0-9]+$" (urlParse .).host | trimPrefix ":" -}}
{{- default (hasPrefix "http://" . | ternary "80" "443") $port -}}
{{- end -}}

{{/* The settings file: config, with what only the chart knows. */}}
{{- define "skill-operator.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $store := default dict $config.store -}}
{{- if .Values.bundledS3.enabled -}}
{{- $_ := set $store "endpoint" (default (printf "http://%s-s3.%s.svc:9000" (include "skill-operator.fullname" .) .Release.Namespace) $store.endpoint) -}}
{{- $_ := set $store "bucket" (default .Values.bundledS3.bucket $store.bucket) -}}
{{- else if not (and $store.endpoint $store.bucket) -}}
{{- fail "the operator keeps packages in S3: set config.store.endpoint and config.store.bucket (--set config.store.endpoint=https://minio.example.com,config.store.bucket=skills), or bundledS3.enabled=true to try it out" -}}
{{- else if not .Values.store.existingSecret -}}
{{- fail (printf "store.existingSecret must name the Secret with the S3 key: kubectl -n %s create secret generic skill-store --from-literal=%s=… --from-literal=%s=… and --set store.existingSecret=skill-store" .Release.Namespace .Values.store.accessKeyKey .Values.store.secretKeyKey) -}}
{{- end -}}
{{- $_ := set $config "store" $store -}}
{{- $_ := set $config "operatorNamespace" .Release.Namespace -}}
{{- $_ := set $config "mirrorDir" "/var/lib/skill-operator/mirrors" -}}
{{- if not (hasKey $config "mirrorDiskMiB") -}}
{{- $_ := set $config "mirrorDiskMiB" (div (mul (include "skill-operator.mebibytes" .Values.mirrors.sizeLimit | int) 8) 10) -}}
{{- end -}}
{{- $_ := set $config "metricsAddress" ":8080" -}}
{{- $_ := set $config "leaderElection" true -}}
{{- if .Values.webhook.enabled -}}
{{- $_ := set $config "webhookAddress" ":9292" -}}
{{- end -}}
{{- with $config.build -}}
{{- $_ := set . "namespace" (include "skill-operator.buildNamespace" $) -}}
{{- $_ := set . "operatorImage" (default (include "skill-operator.image" $) .operatorImage) -}}
{{- if and (not .proxy) (or $.Values.proxy.http $.Values.proxy.https) -}}
{{- $proxy := dict -}}
{{- range $name, $value := $.Values.proxy -}}
{{- if $value -}}{{- $_ := set $proxy $name $value -}}{{- end -}}
{{- end -}}
{{- $_ := set . "proxy" $proxy -}}
{{- end -}}
{{- end -}}
{{- toYaml $config -}}
{{- end -}}

{{/* Name of the Secret with the S3 key. */}}
{{- define "skill-operator.storeSecret" -}}
{{- default (printf "%s-s3" (include "skill-operator.fullname" .)) .Values.store.existingSecret -}}
{{- end -}}
