package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"kaz/internal/localcluster/machine"
)

// Spec describes a machine that boots from an image.
type Spec struct {
	machine.Place
	Image Image `json:"image"`
	// ID is the unique id of the machine.
	ID string `json:"id"`
	// Host is the computer name, User the name of the administrator.
	Host string `json:"host"`
	User string `json:"user"`
	// CustomData is in base64, as Azure takes it.
	CustomData string `json:"customData"`
	// AzureCA is the file of the certificate authority of Azure's hosts.
	AzureCA string `json:"azureCA"`
}

// SpecFile returns the file of the spec of the machine with a disk.
func SpecFile(disk string) string { return filepath.Join(disk, "boot.json") }

// Write writes the spec for [Run] and returns the name of the file. Only root can read it: custom data may have secrets.
func (s Spec) Write() (string, error) {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return "", err
	}
	file := SpecFile(s.Dir)
	return file, os.WriteFile(file, append(text, '\n'), 0o600)
}

// Read reads a file of [Spec.Write].
func Read(file string) (Spec, error) {
	var s Spec
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	if err == nil {
		err = s.check()
	}
	if err != nil {
		return s, fmt.Errorf("machine %s: %w", file, err)
	}
	return s, nil
}

func (s Spec) check() error {
	problems := []error{s.CheckPlace()}
	if len(s.Image.Layers) == 0 {
		problems = append(problems, errors.New("the image has no layers"))
	}
	for name, value := range map[string]string{"id": s.ID, "host": s.Host, "azureCA": s.AzureCA} {
		if value == "" {
			problems = append(problems, fmt.Errorf("%s is missing", name))
		}
	}
	return errors.Join(problems...)
}

// ConsoleLog is the file on the disk of a machine with what its console showed.
const ConsoleLog = "console.log"
