// Package explain says what serves an Ingress, a Gateway or a route at an application gateway, and what it waits for. Layer L3: it
// decides as the controller does, and writes nothing.
package explain
