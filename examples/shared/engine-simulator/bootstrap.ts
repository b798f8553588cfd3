/**
 * How the KV of a prompt gets from a prefill to a decode engine. Gateways give both the same room number; the prefill
 * engine's bootstrap server answers whoever asks for a room once the prompt has been computed, or cannot be any more.
 */
import { createServer } from 'node:http';
import { closeServer, listen } from '../listen.js';

/** The prefill side. */
export interface Bootstrap {
  readonly port: number;
  /** Once for each room. One that nobody asks for is kept: simulators live for a short time. */
  settle(room: number, isComputed: boolean): void;
  close(): Promise<void>;
}

interface Room {
  readonly settled: Promise<boolean>;
  settle(isComputed: boolean): void;
}

export async function startBootstrap(): Promise<Bootstrap> {
  const rooms = new Map<number, Room>();
  const roomOf = (number: number): Room => {
    const known = rooms.get(number);
    if (known !== undefined) return known;
    let settle = (_isComputed: boolean) => {};
    const settled = new Promise<boolean>((resolve) => {
      settle = resolve;
    });
    const room = { settled, settle };
    rooms.set(number, room);
    return room;
  };
  const server = createServer(async (req, res) => {
    const number = Number(req.url?.slice('/rooms/'.length));
    // Whoever comes first makes the room; it is gone when the decode side has left.
    res.once('close', () => rooms.delete(number));
    res.writeHead((await roomOf(number).settled) ? 200 : 410).end();
  });
  const port = Number(new URL(await listen(server)).port);
  return {
    port,
    settle: (room, isComputed) => roomOf(room).settle(isComputed),
    close: () => closeServer(server),
  };
}

/** The decode side: waits for a prompt's KV and tells whether it came. */
export async function receiveKv(host: string, port: number, room: number, signal: AbortSignal): Promise<boolean> {
  try {
    const response = await fetch(`http://${host}:${port}/rooms/${room}`, { signal });
    await response.arrayBuffer();
    return response.ok;
  } catch {
    return false;
  }
}
