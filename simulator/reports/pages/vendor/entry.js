export * from "echarts/core";
import { use } from "echarts/core";
import { CustomChart, BarChart, HeatmapChart, ScatterChart, LineChart } from "echarts/charts";
import { GridComponent, TooltipComponent, DataZoomComponent, LegendComponent, VisualMapComponent, MarkLineComponent, MarkAreaComponent, AriaComponent } from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";
use([CustomChart, BarChart, HeatmapChart, ScatterChart, LineChart, GridComponent, TooltipComponent, DataZoomComponent, LegendComponent, VisualMapComponent, MarkLineComponent, MarkAreaComponent, AriaComponent, CanvasRenderer]);
