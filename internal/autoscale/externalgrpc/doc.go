// Package externalgrpc is the protocol between cluster-autoscaler and a cloud provider outside of its process. Layer L3:
// generated from externalgrpc.proto.
package externalgrpc

//go:generate go -C ../../../tools run ./protobuf -dir ../internal/autoscale/externalgrpc externalgrpc.proto
