// Package csi has what CSI drivers share: the server at a socket, locks by volume, the gRPC codes of Azure's errors, and
// checks of capabilities. Layer L3.
package csi
