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
	kit "kaz/internal/component"
)

// source is the origin of the cloud configuration: a file, a Secret, or both.
type source struct {
	path    string // path of the file, "" for none
	cluster string // the cluster's name
	lookup  func(string) (string, bool)

	secretName, secretNamespace, secretKey string
	reloading                              bool
}

// addFlags adds the flags of the source.
func (s *source) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&s.reloading, "enable-dynamic-reloading", false,
		"Restart the controllers when the cloud configuration changes in its file or Secret. A configuration that cannot be used "+
			"is reported as an event, and the previous one is kept.")
	fs.StringVar(&s.secretName, "cloud-config-secret-name", "",
		"Name of the Secret with the cloud configuration. With --cloud-config, its keys override the file's unless "+
			"cloudConfigType says otherwise. Without --cloud-config, the default is "+cloudconfig.SecretName+".")
	fs.StringVar(&s.secretNamespace, "cloud-config-secret-namespace", cloudconfig.SecretNamespace,
		"Namespace of the Secret with the cloud configuration.")
	fs.StringVar(&s.secretKey, "cloud-config-key", cloudconfig.SecretKey, "Key of the cloud configuration in the Secret.")
}

// errNoSource is the error if neither a file nor a Secret is named.
var errNoSource = errors.New("--cloud-config is missing: set it to the path of azure.json; for a configuration in a Secret, set " +
	"--cloud-config-secret-name, or --enable-dynamic-reloading to use the default Secret")

// fromSecret reports whether the Secret is used, given the content of the file. A file alone is
// enough by default, whatever Secrets exist: naming the Secret asks for a merge.
func (s source) fromSecret() (bool, error) {
	if s.path == "" {
		if s.secretName == "" && !s.reloading {
			return false, errNoSource
		}
		return true, nil
	}
	file, _, err := cloudconfig.Load(s.path)
	if err != nil {
		// parse reports everything that is wrong with the file.
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

// read reads the current configuration.
func (s source) read(ctx context.Context, client kubernetes.Interface) (cloudconfig.Config, error) {
	secret, err := s.readUsed(ctx, client)
	if err != nil {
		return cloudconfig.Config{}, err
	}
	return s.parse(secret)
}

// readUsed reads the Secret, if it is used.
func (s source) readUsed(ctx context.Context, client kubernetes.Interface) ([]byte, error) {
	used, err := s.fromSecret()
	if err != nil || !used {
		return nil, err
	}
	return s.readSecret(ctx, client)
}

// parse reads the file, merges the Secret's data and validates the result.
func (s source) parse(secret []byte) (cloudconfig.Config, error) {
	c, warnings, err := cloudconfig.Read(cloudconfig.Sources{Path: s.path, Secret: secret, Environment: s.lookup})
	kit.LogWarnings(slog.Default(), s.String(), warnings)
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

// warnOfTenant logs a warning if networkResourceTenantID has no effect.
func warnOfTenant(c cloudconfig.Config) {
	way := c.Credential()
	if c.MultiTenant() && (way == cloudconfig.WorkloadIdentity || way == cloudconfig.ManagedIdentityFile) {
		slog.Warn("cloud configuration", "key", "networkResourceTenantID", "message",
			fmt.Sprintf("has no effect with %s, which signs in to one tenant: network resources are read with the identity "+
				"of the cluster's tenant", way))
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
