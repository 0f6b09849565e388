// Package explain says what serves an Ingress, a Gateway or an HTTPRoute at an application gateway, and what it waits for. Layer L3: it
// decides as the controller does, and writes nothing.
package explain
