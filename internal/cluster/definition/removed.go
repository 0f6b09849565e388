package definition

import (
	"fmt"
	"slices"
	"strings"
)

// removedFlags are flags by the program and the minor version of Kubernetes that no longer has them, from 1.32 to 1.37. A comparison of
// the sources of these releases found no others. A program that gets an unknown flag does not start.
func removedFlags() map[string]map[int][]string {
	return map[string]map[int][]string{
		"apiServer": {33: {"cloud-config", "cloud-provider"}},
	}
}

// removedGates are feature gates by the minor version of Kubernetes that no longer has them. A program that gets an unknown gate
// does not start.
func removedGates() map[int]string {
	return map[int]string{
		32: `CloudDualStackNodeIPs DRAControlPlaneController HPAContainerMetrics KMSv2 KMSv2KDF LegacyServiceAccountTokenCleanUp
			MinDomainsInPodTopologySpread NewVolumeManagerReconstruction NodeOutOfServiceVolumeDetach PodHostIPs ServerSideApply
			ServerSideFieldValidation StableLoadBalancerNodeSet ValidatingAdmissionPolicy ZeroLimitedNominalConcurrencyShares`,
		33: `APIListChunking AdmissionWebhookMatchConditions AggregatedDiscoveryEndpoint AppArmor AppArmorFields CPUManager
			DisableCloudProviders DisableKubeletCloudCredentialProviders EfficientWatchResumption JobPodFailurePolicy
			KubeProxyDrainingTerminatingNodes PDBUnhealthyPodEvictionPolicy PersistentVolumeLastPhaseTransitionTime RemainingItemCount
			VolumeCapacityPriority WatchBookmark`,
		34: `DevicePluginCDIDevices ElasticIndexedJob LegacySidecarContainers PodDisruptionConditions StatefulSetStartOrdinal`,
		35: `AllowServiceLBStatusOnNonLB ComponentSLIs CronJobsScheduledAnnotation LoadBalancerIPMode PodIndexLabel
			ProbeHostPodSecurityStandards SizeMemoryBackedVolumes StatefulSetAutoDeletePVC StrictCostEnforcementForVAP
			StrictCostEnforcementForWebhooks UserNamespacesPodSecurityStandards`,
		36: `CSIMigrationPortworx HonorPVReclaimPolicy InPlacePodVerticalScalingAllocatedStatus InTreePluginPortworxUnregister MemoryManager
			ServiceTrafficDistribution StructuredAuthorizationConfiguration TopologyAwareHints WatchFromStorageWithoutResourceVersion`,
		37: `APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors AuthorizeWithSelectors
			BtreeWatchCache ConsistentListFromCache GangScheduling JobBackoffLimitPerIndex JobPodReplacementPolicy JobSuccessPolicy
			LogarithmicScaleDown OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero
			PreventStaticPodAPIReferences RelaxedDNSSearchValidation ResilientWatchCacheInitialization RetryGenerateName
			SchedulerQueueingHints SidecarContainers StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf
			StructuredAuthenticationConfiguration WorkloadAwarePreemption`,
	}
}

// removed refuses flags and feature gates that the version of Kubernetes no longer has.
func (v *validator) removed() {
	k := v.d.Cluster.Spec.Kubernetes
	var minor, patch int
	if n, err := fmt.Sscanf(k.Version, "1.%d.%d", &minor, &patch); n != 2 || err != nil {
		return // another check says so
	}
	for program, args := range map[string]map[string]string{
		"apiServer": k.APIServer.ExtraArgs, "controllerManager": k.ControllerManager.ExtraArgs, "scheduler": k.Scheduler.ExtraArgs,
	} {
		at := "spec.kubernetes." + program + ".extraArgs"
		for since, names := range removedFlags()[program] {
			for _, name := range names {
				if _, set := args[name]; set && since <= minor {
					v.inCluster(at+"."+name, "Kubernetes 1.%d has removed this flag, and the program would not start: want it removed",
						since)
				}
			}
		}
		v.removedGates(at+".feature-gates", args["feature-gates"], minor)
	}
}

func (v *validator) removedGates(path, gates string, minor int) {
	for one := range strings.SplitSeq(gates, ",") {
		name, _, _ := strings.Cut(strings.TrimSpace(one), "=")
		for since, names := range removedGates() {
			if since <= minor && name != "" && slices.Contains(strings.Fields(names), name) {
				v.inCluster(path, "Kubernetes 1.%d has removed the gate %s, and the program would not start: want it removed", since, name)
			}
		}
	}
}
