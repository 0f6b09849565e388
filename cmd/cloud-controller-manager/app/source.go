package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"kaz/internal/cloudconfig"
)

// source is where the cloud configuration comes from: a file, a Secret, or both.
type source struct {
	path    string // of the file, "" for none
	cluster string // the cluster's name
	lookup  func(string) (string, bool)

	secretName, secretNamespace, secretKey string
	reloading                              bool
}

// addFlags adds the flags that the framework does not have.
func (s *source) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&s.reloading, "enable-dynamic-reloading", false,
		"Begin anew with the cloud configuration when it changes in its file or Secret. One that cannot be used is told of in an event, and the one before stays in force.")
	fs.StringVar(&s.secretName, "cloud-config-secret-name", "",
		"Name of the Secret with the cloud configuration. With --cloud-config its keys win over those of the file, unless cloudConfigType says otherwise. Without --cloud-config it is "+cloudconfig.SecretName+" unless this says otherwise.")
	fs.StringVar(&s.secretNamespace, "cloud-config-secret-namespace", cloudconfig.SecretNamespace, "Namespace of the Secret with the cloud configuration.")
	fs.StringVar(&s.secretKey, "cloud-config-key", cloudconfig.SecretKey, "Key under which the Secret has the cloud configuration.")
}

// errNoSource says what is missing.
var errNoSource = errors.New("--cloud-config is missing: the path of azure.json; for a configuration in a Secret, --cloud-config-secret-name, or --enable-dynamic-reloading for the one of the usual name")

// fromSecret reports whether the Secret counts, given what the file says. A file alone
// has always been enough, whatever Secrets of other programs there are: a merge is
// asked for by naming the Secret.
func (s source) fromSecret() (bool, error) {
	if s.path == "" {
		if s.secretName == "" && !s.reloading {
			return false, errNoSource
		}
		return true, nil
	}
	file, _, err := cloudconfig.Load(s.path)
	if err != nil {
		// Reading it for good says all that is wrong with it.
		return false, nil
	}
	switch file.CloudConfigType {
	case cloudconfig.ConfigSecret:
		return true, nil
	case cloudconfig.ConfigFile:
		return false, nil
	}
	return s.secretName != "", nil
}

func (s source) secret() string { return or(s.secretName, cloudconfig.SecretName) }

// String names the source in errors and logs.
func (s source) String() string {
	secret := "secret " + s.secretNamespace + "/" + s.secret()
	used, err := s.fromSecret()
	switch {
	case err != nil || !used:
		return s.path
	case s.path == "":
		return secret
	}
	return s.path + " and " + secret
}

// read reads the configuration as it is now.
func (s source) read(ctx context.Context, client kubernetes.Interface) (cloudconfig.Config, error) {
	used, err := s.fromSecret()
	if err != nil {
		return cloudconfig.Config{}, err
	}
	var secret []byte
	if used {
		if secret, err = s.readSecret(ctx, client); err != nil {
			return cloudconfig.Config{}, err
		}
	}
	return s.parse(secret)
}

// parse reads the file, and checks it with what is in the Secret.
func (s source) parse(secret []byte) (cloudconfig.Config, error) {
	c, warnings, err := cloudconfig.Read(cloudconfig.Sources{Path: s.path, Secret: secret, Environment: s.lookup})
	for _, w := range warnings {
		slog.Warn("cloud configuration", "source", s.String(), "key", w.Key, "message", w.Message)
	}
	if err == nil {
		c, err = withoutBasic(c)
	}
	if err == nil {
		err = errors.Join(c.ValidateFor(s.cluster), checkSelectors(c))
	}
	if err == nil {
		warnOfTenant(c)
		err = unserved(c)
	}
	if err != nil {
		return c, fmt.Errorf("cloud configuration %s: %w", s, err)
	}
	return c, nil
}

// warnOfTenant says what becomes of a tenant that cannot be signed in to.
func warnOfTenant(c cloudconfig.Config) {
	if c.MultiTenant() && c.Credential() == cloudconfig.WorkloadIdentity {
		slog.Warn("cloud configuration", "key", "networkResourceTenantID", "message",
			"has no effect with workload identity, which signs in to one tenant: network resources are looked for with the identity of the cluster's tenant")
	}
}

func (s source) readSecret(ctx context.Context, client kubernetes.Interface) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, atStart)
	defer cancel()
	secret, err := client.CoreV1().Secrets(s.secretNamespace).Get(ctx, s.secret(), metav1.GetOptions{})
	if err == nil {
		var data []byte
		if data, err = cloudconfig.SecretData(secret.Data, s.secretKey); err == nil {
			return data, nil
		}
	}
	return nil, fmt.Errorf("cloud configuration in secret %s/%s: %w", s.secretNamespace, s.secret(), err)
}
