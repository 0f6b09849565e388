// Package deploy has what a cluster installs: the Helm chart, plain manifests rendered from it, and
// least-privilege role definitions. No program imports it; it belongs to no layer.
package deploy

//go:generate go -C ../test/chart run . -manifests ../../deploy/manifests
//go:generate go test -run "TestRoles|TestReference|TestDashboards|TestAlerts" -update .
