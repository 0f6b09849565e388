package explain

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"kaz/internal/azure"
	"kaz/internal/controller"
	"kaz/internal/key"
)

// Advice is what the owner of a Service can do about a refusal of Azure, to follow the error:
// Azure speaks of its own things, not of the annotation that names them. It is "" where
// there is nothing to add.
func Advice(s *corev1.Service, err error) string {
	e, ok := errors.AsType[*azure.Error](err)
	if !ok {
		return ""
	}
	text := e.Target + " " + e.Message
	var b strings.Builder
	for _, said := range key.AzureNames(s.Annotations) {
		if mentions(text, said.Value) {
			fmt.Fprintf(&b, "; annotation %s: %q, allowed is %s", said.Key, said.Value, said.Allowed)
		}
	}
	if ip := strings.TrimSpace(s.Spec.LoadBalancerIP); ip != "" && mentions(text, ip) {
		fmt.Fprintf(&b, "; spec.loadBalancerIP: %q, allowed is an address that can be had there", ip)
	}
	return b.String() + remedies[e.Kind]
}

// remedies are what helps against refusals that are about more than one Service.
var remedies = map[azure.Kind]string{
	azure.Quota:    "; to do: delete what you do not need, or have Azure raise the limit",
	azure.Capacity: "; to do: nothing, it is tried again; or ask for another zone or region",
	azure.Denied:   "; to do: give the cluster's identity the right, or take the policy or lock away",
}

// mentions reports whether a text has a name or an address, which may end an id.
func mentions(text, word string) bool {
	text, word = strings.ToLower(text), strings.ToLower(word)
	return controller.Mentions(text, word) || controller.Mentions(text, "/"+word)
}
