package process

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
)

// Spec describes one process to run.
type Spec struct {
	// Name identifies the process within its directory: lower-case letters, digits and dashes.
	Name string
	// Path is the program. It is not looked up in PATH.
	Path string
	Args []string
	// Env is the whole environment of the process. Nothing is inherited.
	Env []string
	// Dir is the working directory; the group's directory when empty.
	Dir string
	// LogFile receives standard output and standard error, appended; logs/<Name>.log when empty.
	LogFile string
}

// namePattern keeps names safe as file names.
var namePattern = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

// complete checks a spec and fills what may be left empty.
func (s Spec) complete(dir string) (Spec, error) {
	if !namePattern.MatchString(s.Name) {
		return s, fmt.Errorf("process name %q: want lower-case letters, digits and dashes", s.Name)
	}
	if s.Name == OwnerName {
		return s, fmt.Errorf("process name %q is reserved for the program that owns the directory", s.Name)
	}
	if s.Path == "" {
		return s, errors.New("process " + s.Name + ": no program given")
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
