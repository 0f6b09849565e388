// Package hooks has what a CSI driver does at the beginning and at the end of a node's life besides serving: it removes
// the taint that keeps pods away until the driver is registered, and delays its own end while volumes of a drained node
// are still attached. Layer L3.
package hooks
