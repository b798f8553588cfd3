/** What the metrics read of a router, and how they listen to it. */
import type { RouterEventName, RouterListener } from '../events.js';
import type { Router } from '../router.js';

/** The part of a router that metrics read. */
export type MetricsSource = Pick<Router, 'on' | 'workers' | 'pools' | 'pinCount'>;

/** Subscribes to one event of the router that is being bound. */
export type Subscribe = <E extends RouterEventName>(event: E, listener: RouterListener<E>) => void;
