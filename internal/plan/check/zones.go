package check

import "fmt"

// zones judges the DNS zones that the external-dns-webhook serves.
func zones(f *Facts, l *list) {
	arguments, runs := f.Arguments[dnsWebhook]
	if !runs {
		l.add("all", OK, "no "+dnsWebhook+" runs in a pod, so it serves none", "")
		return
	}
	if len(f.Zones) == 0 {
		l.add("all", Problem, "the "+dnsWebhook+" finds no zone", "correct its flags, or make the zone: docs/guides/dns.md")
	}
	for _, z := range f.Zones {
		p := z.Doc.Properties
		switch {
		case z.Absent:
			l.add(z.ID.Name(), Problem, "it is not in Azure: "+string(z.ID), "make the zone, or correct --zone of the "+dnsWebhook)
		case p.MaxNumberOfRecordSets <= 0:
		case p.NumberOfRecordSets >= p.MaxNumberOfRecordSets:
			l.add(z.ID.Name(), Problem, fmt.Sprintf("it has %d record sets, and can have no more", p.NumberOfRecordSets), moreRecords)
		case float64(p.NumberOfRecordSets) > float64(p.MaxNumberOfRecordSets)*nearlyUsed:
			l.add(z.ID.Name(), Warning, fmt.Sprintf("it has %d of at most %d record sets", p.NumberOfRecordSets, p.MaxNumberOfRecordSets),
				moreRecords)
		}
	}
	if arguments.Last("dry-run") == "true" {
		l.add("flags", Warning, "the "+dnsWebhook+" has --dry-run, so it writes nothing", "remove --dry-run")
	}
}

const moreRecords = "remove names that are not needed, give a part of the names a zone of their own, or ask Azure for a higher limit"
