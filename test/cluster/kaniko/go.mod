module skill-operator.test/kaniko

go 1.24.0
