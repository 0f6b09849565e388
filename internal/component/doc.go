// Package component is the kit of kaz's programs: what a program does before its own work begins. [Program] is its command line, with
// logger and signals; [CloudConfig] reads azure.json; [Diagnostics] are its metrics, health and profiles.
//
// Parts that need large libraries are packages of their own, so that small programs do not contain them: access opens Azure, kubeconfig
// the Kubernetes API, event and election are for controllers, traces exports spans. Layer L4.
package component
