module skill-operator.test/helm

go 1.26

tool helm.sh/helm/v3/cmd/helm

require helm.sh/helm/v3 v3.22.0
