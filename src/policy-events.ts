/** Connects the callbacks of a pool's policy to the router's typed events; none is there while nobody listens (LB-50). */
import type { EventHub } from './event-hub.js';
import type { Warning } from './events.js';
import type { Leg, PolicyEvents } from './policies/policy.js';

export function policyEventsOf(hub: EventHub, warn: (warning: Warning) => void, model: string, leg: Leg): PolicyEvents {
  return {
    warning: (warning) => warn({ ...warning, model }),
    get placement(): PolicyEvents['placement'] {
      return hub.heard('placement') ? (learned) => hub.emit('placement', { model, leg, ...learned }) : undefined;
    },
    get treeEvicted(): PolicyEvents['treeEvicted'] {
      return hub.heard('treeEvicted') ? (evicted) => hub.emit('treeEvicted', { model, leg, ...evicted }) : undefined;
    },
  };
}

/** The router's pin map is shared by all pools, so its events name none. */
export function pinEventsOf(hub: EventHub): PolicyEvents {
  return {
    get pinEvicted(): PolicyEvents['pinEvicted'] {
      return hub.heard('pinEvicted') ? (evicted) => hub.emit('pinEvicted', evicted) : undefined;
    },
  };
}
