package process

import (
	"fmt"
	"path/filepath"
	"regexp"
)

// Spec describes one process to run.
type Spec struct {
	// Name identifies the process within its directory: lower-case letters, digits and dashes.
	Name string
	// Path is the file of the program. PATH is not searched.
	Path string
	Args []string
	// Env is the whole environment of the process. It inherits no variables.
	Env []string
	// Dir is the working directory, the group's directory if empty.
	Dir string
	// LogFile is the file to which standard output and standard error are appended, logs/<Name>.log if empty.
	LogFile string
}

// namePattern keeps names safe as file names.
var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// complete validates a spec and sets the defaults.
func (s Spec) complete(dir string) (Spec, error) {
	if !namePattern.MatchString(s.Name) {
		return s, fmt.Errorf("process name %q: want lower-case letters, digits and dashes", s.Name)
	}
	if s.Name == OwnerName {
		return s, fmt.Errorf("process name %q is reserved for the program that owns the directory", s.Name)
	}
	if s.Path == "" {
		return s, fmt.Errorf("process %s: Path is missing", s.Name)
	}
	if s.Dir == "" {
		s.Dir = dir
	}
	if s.LogFile == "" {
		s.LogFile = filepath.Join(dir, "logs", s.Name+".log")
	}
	if s.Env == nil {
		s.Env = []string{}
	}
	return s, nil
}
