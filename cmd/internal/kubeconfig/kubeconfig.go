// Package kubeconfig words errors about kubeconfigs. Layer L4.
package kubeconfig

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
)

// missingContext is how the library names a context that is absent.
var missingContext = regexp.MustCompile(`context "([^"]*)" does not exist|context was not found for specified context: ([^\s,\]]+)`)

// Explain words an error of Kubernetes' library about a kubeconfig: what is wrong, and what is allowed. It keeps other errors.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	switch {
	case missingContext.MatchString(text):
		name := strings.Join(missingContext.FindStringSubmatch(text)[1:], "")
		return fmt.Errorf("it has no context %q; want one that kubectl config get-contexts shows", name)
	case clientcmd.IsEmptyConfig(err), errors.Is(err, clientcmd.ErrEmptyCluster):
		return errors.New("it names no cluster; want a kubeconfig with a current-context, its cluster and its user")
	case strings.Contains(text, "json parse error"), strings.Contains(text, "yaml: "), strings.Contains(text, "cannot unmarshal"),
		strings.Contains(text, "Object 'Kind' is missing"), strings.Contains(text, "no kind "), strings.Contains(text, "illegal base64"):
		return errors.New("it is no kubeconfig; want a YAML or JSON document of apiVersion v1 and kind Config")
	}
	return err
}
