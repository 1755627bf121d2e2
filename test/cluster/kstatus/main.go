// What kubectl wait, Flux and other tools of cli-utils make of objects: a list of objects on stdin, their states on stdout.
package main

import (
	"encoding/json"
	"log"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	var objects []json.RawMessage
	if err := json.NewDecoder(os.Stdin).Decode(&objects); err != nil {
		log.Fatal(err)
	}
	states := make([]string, 0, len(objects))
	for _, raw := range objects {
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(raw); err != nil {
			log.Fatal(err)
		}
		result, err := status.Compute(&object)
		if err != nil {
			log.Fatal(err)
		}
		states = append(states, string(result.Status))
	}
	if err := json.NewEncoder(os.Stdout).Encode(states); err != nil {
		log.Fatal(err)
	}
}
