// Package hooks has the tasks of a CSI driver at the beginning and at the end of a node's life. At the beginning it removes
// the taint that keeps pods away until the driver is registered. At the end it delays the driver's exit while volumes of a
// drained node are still attached. Layer L3.
package hooks
