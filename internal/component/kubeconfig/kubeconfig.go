// Package kubeconfig reads the flags of the Kubernetes API, and words errors about kubeconfigs. Layer L4.
package kubeconfig

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options are the values of the flags of a program that can do without the Kubernetes API.
type Options struct {
	Kubeconfig string
	QPS        float32
	Burst      int
}

// AddFlags adds the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"Path of the kubeconfig. Empty means the service account of the pod, if it runs in one.")
	flags.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "Requests per second to the Kubernetes API server; 0 means client-go's default.")
	flags.IntVar(&o.Burst, "kube-api-burst", o.Burst, "Burst of requests to the Kubernetes API server; 0 means client-go's default.")
}

// Read returns the configuration of clients, nil without a kubeconfig outside a pod.
func (o *Options) Read(program string) (config *rest.Config, err error) {
	if o.Kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	} else if config, err = rest.InClusterConfig(); errors.Is(err, rest.ErrNotInCluster) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %q: %w", o.Kubeconfig, Explain(err))
	}
	config.QPS, config.Burst = o.QPS, o.Burst
	return rest.AddUserAgent(config, program), nil
}

// Read returns the configuration of clients of a program that needs the Kubernetes API.
func Read(master, kubeconfig string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags(master, kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %q, --master %q: %w", kubeconfig, master, Explain(err))
	}
	return config, nil
}

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
