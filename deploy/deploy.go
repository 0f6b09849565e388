// Package deploy is what a real cluster is given: the Helm chart, plain manifests made
// of it, and the least rights that Azure has to give. Beside the layers: no program
// imports it.
package deploy

//go:generate go -C ../test/chart run . -manifests ../../deploy/manifests
//go:generate go test -run "TestRoles|TestReference" -update .
