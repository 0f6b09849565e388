// Command release makes what users install kaz from: archives of the programs, packages, charts and images, with an SBOM for each
// archive, checksums, and signatures of them. Two runs for the same commit write the same bytes, except for the signatures.
//
// It runs git, go, and those programs that go.mod pins: cosign, helm and syft. It has its own module because only it needs them.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	r := release{log: os.Stdout}
	var platforms string
	flag.StringVar(&r.source, "source", ".", "folder of the repository, without changes that are not committed")
	flag.StringVar(&r.out, "out", "dist", "folder for the release; it must be empty or not exist")
	flag.StringVar(&r.tools, "tools", "bin", "folder with the programs cosign, helm and syft")
	flag.StringVar(&r.version, "version", "", "version of the release, such as v0.1.0")
	flag.StringVar(&r.key, "key", "", "file of cosign's private key, whose password is in COSIGN_PASSWORD; without it nothing is signed")
	flag.StringVar(&platforms, "platforms", strings.Join(allPlatforms(), ","), "platforms of the programs, with commas between")
	flag.Parse()
	r.platforms = strings.Split(platforms, ",")
	if err := r.absolute(); err != nil {
		fail(err)
	}
	if err := r.run(ctx); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "release:", err)
	os.Exit(1)
}

// absolute makes the paths absolute: programs run in different folders.
func (r *release) absolute() error {
	for _, path := range []*string{&r.source, &r.out, &r.tools, &r.key} {
		if *path == "" {
			continue
		}
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return err
		}
		*path = absolute
	}
	return nil
}
