/** What a request can fail with in the gateway itself. */
import { HttpException, type HttpExceptionOptions } from '@nestjs/common';
import { type NotSelected, responseHeaders } from 'kvroute';

/** An answer of the gateway's own, with the code that goes into `X-SMG-Error-Code`. */
export class GatewayException extends HttpException {
  constructor(
    status: number,
    readonly code: string,
    message: string,
    options?: HttpExceptionOptions,
  ) {
    super(message, status, options);
  }
}

/** No worker may serve the request: unavailable, or all of them shed load. */
export class NotSelectedException extends GatewayException {
  /** `X-SMG-Error-Code`, for a shed also `Retry-After`. */
  readonly headers: Readonly<Record<string, string>>;

  constructor(refusal: NotSelected) {
    super(503, refusal.code, `no worker could be selected: ${refusal.reason}`);
    this.headers = responseHeaders(refusal);
  }
}
