package cluster

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"kaz/internal/plan/cluster/emit"
	"kaz/internal/plan/cluster/naming"
)

// Files are the files of kaz cluster generate, by their paths: the template and its parameters without secrets, the template
// of each unit, the boot files and checksums.
func (p Plan) Files() map[string][]byte {
	t := p.Template(emit.Options{})
	files := map[string][]byte{
		"template.json":   emit.JSON(t.Main),
		"parameters.json": emit.JSON(emit.Parameters(p.Graph)),
	}
	for name, body := range t.Units {
		files["units/"+name+".json"] = emit.JSON(body)
	}
	files["cloud-init/control-plane.yaml"] = p.Boot.ControlPlane
	for pool, file := range p.Boot.Pools {
		files["cloud-init/"+naming.PoolUnit(pool)+".yaml"] = file
	}
	var sums strings.Builder
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(files[path]), path)
	}
	files["SHA256SUMS"] = []byte(sums.String())
	return files
}
