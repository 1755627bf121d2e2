module skill-operator.test/pause

go 1.24.0
