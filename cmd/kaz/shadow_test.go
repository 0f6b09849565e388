package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// TestShadowManifest checks that the command takes the arguments of the Deployment that runs it in a cluster.
func TestShadowManifest(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "manifests", "kaz-shadow.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for part := range strings.SplitSeq(string(text), "\n---\n") {
		var d appsv1.Deployment
		if err := yaml.Unmarshal([]byte(part), &d); err != nil {
			t.Fatal(err)
		}
		if d.Kind != "Deployment" {
			continue
		}
		found = true
		args := d.Spec.Template.Spec.Containers[0].Args
		if args[0] != "shadow" {
			t.Fatalf("arguments %q", args)
		}
		command := shadowCommand()
		if err := command.ParseFlags(args[1:]); err != nil {
			t.Fatal(err)
		}
		if err := command.Args(command, command.Flags().Args()); err != nil {
			t.Error(err)
		}
	}
	if !found {
		t.Error("there is no Deployment")
	}
}
