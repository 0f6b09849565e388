package cloudconfig

import (
	"errors"
	"fmt"
	"os"

	"kaz/internal/azure/secret"
)

// The Secret with the configuration, unless flags say otherwise.
const (
	SecretNamespace = "kube-system"
	SecretName      = "azure-cloud-provider"
	SecretKey       = "cloud-config"
)

// SecretData returns the configuration in the data of a Secret.
func SecretData(data map[string][]byte, key string) ([]byte, error) {
	if found := data[key]; len(found) > 0 {
		return found, nil
	}
	return nil, fmt.Errorf("cloud config: no data in secret under key %q", key)
}

// Sources are the sources of a configuration.
type Sources struct {
	Path   string // path of the file, or ""
	Secret []byte // configuration in the Secret, or nil
	// Environment looks up an environment variable; nil means an empty environment
	Environment func(string) (string, bool)
}

// Read returns the configuration of a program: file and Secret as cloudConfigType says, overridden by
// the environment, completed with defaults and validated. The error is [Problems] with all problems,
// or says why the file cannot be opened.
func Read(s Sources) (Config, []Warning, error) {
	if s.Path == "" && s.Secret == nil {
		return Config{}, nil, errors.New("cloud config: neither a file nor a secret is given")
	}
	var file []byte
	if s.Path != "" {
		var err error
		if file, err = os.ReadFile(s.Path); err != nil {
			return Config{}, nil, fmt.Errorf("open cloud config: %w", err)
		}
	}
	r := newReading()
	r.merge(s.Path, file, s.Secret)
	if s.Environment != nil {
		r.config.ApplyEnvironment(s.Environment)
	}
	r.finish()
	for _, p := range r.config.problems() {
		if !r.problems.unreadable() && !r.problems.names(p.Key) {
			r.problems = append(r.problems, p)
		}
	}
	return r.config, r.warnings, r.problems.err()
}

// Parse reads one document, JSON or YAML, and fills in the defaults. The error is [Problems] with all
// values of a wrong type, or says why the document cannot be read. Parse does not validate the
// values: see [Config.Validate].
func Parse(data []byte) (Config, []Warning, error) {
	r := newReading()
	r.read("", data)
	r.finish()
	return r.config, r.warnings, r.problems.err()
}

// Load is like Parse for a file.
func Load(path string) (Config, []Warning, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Config{}, nil, fmt.Errorf("open cloud config: %w", err)
	}
	r := newReading()
	r.read(path, data)
	r.finish()
	return r.config, r.warnings, r.problems.err()
}

// Merge is like Parse for a file and a Secret, either of which may be nil. The cloudConfigType of the
// file says which ones are used. With merge, keys of the Secret override those of the file.
func Merge(file, secret []byte) (Config, []Warning, error) {
	r := newReading()
	r.merge("file", file, secret)
	r.finish()
	return r.config, r.warnings, r.problems.err()
}

func (r *reading) merge(path string, file, secret []byte) {
	if file != nil {
		r.read(path, file)
	}
	if secret == nil {
		return
	}
	switch r.config.CloudConfigType {
	case ConfigFile:
		return
	case ConfigSecret:
		*r = *newReading()
		r.config.CloudConfigType = ConfigSecret
	}
	r.read("secret", secret)
}

// finish fills in the defaults and adds warnings about the tags.
func (r *reading) finish() {
	r.config.Complete()
	r.source = ""
	_, warnings := r.config.parseTags()
	r.warnings = append(r.warnings, warnings...)
}

// unreadable reports whether a whole document could not be read. Missing keys then mean nothing.
func (p Problems) unreadable() bool { return p.names("") }

// ApplyEnvironment overrides the configuration by environment variables, as for pods with workload
// identity. lookup is os.LookupEnv in a program. Empty variables are ignored.
func (c *Config) ApplyEnvironment(lookup func(string) (string, bool)) {
	set := func(name string, use func(string)) {
		if value, ok := lookup(name); ok && value != "" {
			use(value)
		}
	}
	set("AZURE_TENANT_ID", func(v string) { c.TenantID = v })
	set("AZURE_CLIENT_ID", func(v string) { c.AADClientID = v })
	set("AZURE_CLIENT_SECRET", func(v string) { c.AADClientSecret = secret.New(v) })
	set("AZURE_FEDERATED_TOKEN_FILE", func(v string) {
		c.AADFederatedTokenFile = v
		c.UseFederatedWorkloadIdentityExtension = true
	})
	set("AZURE_ENVIRONMENT_FILEPATH", func(v string) { c.EnvironmentFile = v })
}
