// CoreDNS with the two plugins that name the Services of a cluster, as the pod kube-dns of the test clusters that want one.
package main

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
)

func main() { coremain.Run() }
